# tests of golden
