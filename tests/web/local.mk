# tests of web
