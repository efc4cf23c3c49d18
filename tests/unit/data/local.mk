# tests of unit/data
