# tests of unit/kernels
