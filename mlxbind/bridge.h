#ifndef FIRESTEEL_BRIDGE_H
#define FIRESTEEL_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mlx/c/mlx.h"

// Installs the error handler that keeps MLX from ending the process.
void firesteel_catch_errors(void);

// Takes the message of this thread's last error; the caller frees it. NULL when there is none.
char *firesteel_take_error(void);

// Wraps a Go function, named by handle, as an MLX closure.
mlx_closure firesteel_closure(uintptr_t handle);

// A number for the calling OS thread.
uintptr_t firesteel_thread(void);

// Operations of one and of two arrays, by number, so that Go reaches each through one call.
#define FIRESTEEL_UNARY(X) \
  X(abs) X(exp) X(log) X(sqrt) X(square) X(rsqrt) X(sin) X(cos) X(sigmoid) X(tanh) X(negative) \
  X(logical_not) X(stop_gradient) X(isfinite)
#define FIRESTEEL_BINARY(X) \
  X(add) X(subtract) X(multiply) X(divide) X(power) X(maximum) X(minimum) X(equal) \
  X(greater) X(greater_equal) X(less) X(less_equal) X(logical_and) X(logical_or) X(matmul)

#define FIRESTEEL_NUMBER(name) FIRESTEEL_##name,
enum { FIRESTEEL_UNARY(FIRESTEEL_NUMBER) FIRESTEEL_UNARY_COUNT };
enum { FIRESTEEL_BINARY(FIRESTEEL_NUMBER) FIRESTEEL_BINARY_COUNT };
#undef FIRESTEEL_NUMBER

int firesteel_unary(int op, mlx_array *result, mlx_array a, mlx_stream stream);
int firesteel_binary(int op, mlx_array *result, mlx_array a, mlx_array b, mlx_stream stream);
const char *firesteel_unary_name(int op);
const char *firesteel_binary_name(int op);

#endif
