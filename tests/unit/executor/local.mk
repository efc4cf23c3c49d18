# tests of unit/executor
