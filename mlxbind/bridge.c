#include "bridge.h"
#include <pthread.h>

#include "_cgo_export.h"

// mlx-c frees the text after the handler returns, so it is copied at once; thread-local
// because a call's error is fetched on the thread that made the call.
static _Thread_local char *last_error;

static void keep_error(const char *message, void *data) {
  (void)data;
  free(last_error);
  last_error = strdup(message);
}

void firesteel_catch_errors(void) { mlx_set_error_handler(keep_error, NULL, NULL); }

char *firesteel_take_error(void) {
  char *taken = last_error;
  last_error = NULL;
  return taken;
}

static int call_go(mlx_vector_array *result, const mlx_vector_array input, void *payload) {
  return firesteelClosure(result, input, (uintptr_t)payload);
}

static void forget_go(void *payload) { firesteelForget((uintptr_t)payload); }

mlx_closure firesteel_closure(uintptr_t handle) {
  return mlx_closure_new_func_payload(call_go, (void *)handle, forget_go);
}

uintptr_t firesteel_thread(void) { return (uintptr_t)pthread_self(); }

typedef int (*unary)(mlx_array *, const mlx_array, const mlx_stream);
typedef int (*binary)(mlx_array *, const mlx_array, const mlx_array, const mlx_stream);

#define FIRESTEEL_FUNCTION(name) mlx_##name,
#define FIRESTEEL_NAME(name) #name,
static const unary unaries[] = {FIRESTEEL_UNARY(FIRESTEEL_FUNCTION)};
static const binary binaries[] = {FIRESTEEL_BINARY(FIRESTEEL_FUNCTION)};
static const char *const unary_names[] = {FIRESTEEL_UNARY(FIRESTEEL_NAME)};
static const char *const binary_names[] = {FIRESTEEL_BINARY(FIRESTEEL_NAME)};

int firesteel_unary(int op, mlx_array *result, mlx_array a, mlx_stream stream) {
  return unaries[op](result, a, stream);
}

int firesteel_binary(int op, mlx_array *result, mlx_array a, mlx_array b, mlx_stream stream) {
  return binaries[op](result, a, b, stream);
}

const char *firesteel_unary_name(int op) { return unary_names[op]; }
const char *firesteel_binary_name(int op) { return binary_names[op]; }
