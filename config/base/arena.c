#include "config/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 * 1024, KEPT_BYTES_MAX = 256 * 1024, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *next;
    size_t size; /* of bytes[] */
    size_t used;
    size_t padding; /* keeps bytes[] aligned to 16 */
    char bytes[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
    *arena = (struct arena){.max_bytes = max_bytes};
}

static void block_free(const struct arena *arena, struct arena_block *block)
{
    if (block == NULL)
        return;
    quota_give(arena->share, sizeof *block + block->size);
    free(block);
}

void arena_dispose(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        block_free(arena, block);
    }
    arena->blocks = NULL;
    arena->used_bytes = 0;
}

void arena_wipe(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks; block != NULL; block = block->next)
        explicit_bzero(block->bytes, block->used);
    arena_dispose(arena);
}

void arena_reset(struct arena *arena)
{
    struct arena_block *kept = NULL;

    for (struct arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        if (block->size > KEPT_BYTES_MAX || (kept != NULL && kept->size >= block->size)) {
            block_free(arena, block);
            continue;
        }
        block_free(arena, kept);
        kept = block;
    }
    if (kept != NULL) {
        kept->next = NULL;
        kept->used = 0;
    }
    arena->blocks = kept;
    arena->used_bytes = 0;
}

static struct arena_block *block_with_room(struct arena *arena, size_t size)
{
    struct arena_block *newest = arena->blocks;
    if (newest != NULL && newest->size - newest->used >= size)
        return newest;

    size_t block_size = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    if (!quota_take(arena->share, sizeof(struct arena_block) + block_size))
        return NULL;
    struct arena_block *block = malloc(sizeof *block + block_size);
    if (block == NULL) {
        quota_give(arena->share, sizeof *block + block_size);
        return NULL;
    }
    *block = (struct arena_block){.next = newest, .size = block_size};
    arena->blocks = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > arena->max_bytes)
        return NULL;
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size > arena->max_bytes - arena->used_bytes)
        return NULL;
    struct arena_block *block = block_with_room(arena, size);
    if (block == NULL)
        return NULL;
    void *memory = block->bytes + block->used;
    block->used += size;
    arena->used_bytes += size;
    return memset(memory, 0, size);
}

struct slice arena_copy(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len + 1);

    if (copy == NULL)
        return (struct slice){NULL, 0};
    if (text.len != 0)
        memcpy(copy, text.ptr, text.len);
    return (struct slice){copy, text.len};
}

struct slice arena_vprintf(struct arena *arena, const char *format, va_list arguments)
{
    va_list again;

    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (text != NULL)
        (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text == NULL ? (struct slice){NULL, 0} : (struct slice){text, (size_t)length};
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    struct slice text = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    return text;
}

/* The bytes that arena_append allocates for a text of that length: a power of two. */
static size_t text_capacity(size_t length)
{
    size_t capacity = 64;

    while (capacity < length)
        capacity *= 2;
    return length == 0 ? 0 : capacity;
}

bool arena_append(struct arena *arena, struct slice *text, struct slice more)
{
    size_t length = text->len + more.len;
    char *bytes = (char *)(uintptr_t)text->ptr;

    if (length > arena->max_bytes)
        return false;
    if (length > text_capacity(text->len)) {
        bytes = arena_alloc(arena, text_capacity(length));
        if (bytes == NULL)
            return false;
        if (text->len != 0)
            memcpy(bytes, text->ptr, text->len);
    }
    if (more.len != 0)
        memcpy(bytes + text->len, more.ptr, more.len);
    *text = (struct slice){bytes, length};
    return true;
}

void *arena_grow(struct arena *arena, void *array, size_t count, size_t size)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return array; /* it grows at powers of two only */
    if (count > SIZE_MAX / 2 / size)
        return NULL;
    void *grown = arena_alloc(arena, (count == 0 ? 1 : count * 2) * size);
    if (grown != NULL && count != 0)
        memcpy(grown, array, count * size);
    return grown;
}

void *array_grow(void *array, size_t count, size_t size)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return array;
    return count > SIZE_MAX / 2 / size ? NULL : realloc(array, (count == 0 ? 1 : count * 2) * size);
}
