# tests of unit/store
