# tests of unit/web
