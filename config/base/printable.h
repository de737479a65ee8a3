/*
 * printable: text of a cluster on its way to a terminal. Who may create a pod chooses what stands
 * in some of its strings, and must not be able to move the cursor, or to clear a line.
 */
#ifndef CONFIG_BASE_PRINTABLE_H
#define CONFIG_BASE_PRINTABLE_H

/* Puts a '?' in the place of each byte of a control character: those of ASCII (line breaks and tabs
 * among them), and U+0080 to U+009F. */
void make_printable(char *text);

#endif
