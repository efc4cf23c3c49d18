# tests of unit/launcher
