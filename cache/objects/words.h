/*
 * words: lists of words in one text, with commas between them: names of drivers, modes.
 *
 * Ownership: a list that is read is in the arena. Threads: any.
 */
#ifndef CACHE_OBJECTS_WORDS_H
#define CACHE_OBJECTS_WORDS_H

#include "cache/json/pull.h"

/* A reader for pull_fields, into a struct slice: adds the names in an array, so many at most. */
enum { WORDS_READ_MAX = 64 };
bool words_read(struct pull *json, struct arena *arena, void *field);

/* Adds a word to the list in *field. False: a problem. */
bool words_add(struct pull *json, struct arena *arena, struct slice *field, struct slice word);

/* Removes the next word from *rest (false: there is none); whether there is such a word. */
bool words_next(struct slice *rest, struct slice *word);
bool words_have(struct slice words, struct slice word);

#endif
