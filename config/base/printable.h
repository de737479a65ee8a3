/*
 * printable: makes text of a cluster safe for a terminal. Anyone who may create a pod chooses some
 * of its strings, and must not be able to move the cursor or to clear a line.
 */
#ifndef CONFIG_BASE_PRINTABLE_H
#define CONFIG_BASE_PRINTABLE_H

/* Replaces each byte of a control character by '?': those of ASCII, including line breaks and tabs,
 * U+0080 to U+009F, and those that turn the direction of what follows (U+202A to U+202E, U+2066 to
 * U+2069, U+200E, U+200F, U+061C). */
void make_printable(char *text);

#endif
