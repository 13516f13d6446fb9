/* As much of the C library as the bindings take; see nudge.c. */
#ifndef NUDGE_STDLIB_H
#define NUDGE_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void *realloc(void *pointer, size_t size);
void free(void *pointer);
_Noreturn void abort(void);

#endif
