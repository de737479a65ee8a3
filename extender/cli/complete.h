/*
 * complete: completion of a command line in a shell.
 *
 * The scripts of `claimguard completion` call `claimguard __complete WORDS...`, which prints what
 * may stand for the last of the words: a line each, with its description behind a tab, and a last
 * line: ":0" if it may also be a file's name, ":4" if not. This is the protocol of cobra
 * (github.com/spf13/cobra), so that kubectl completes its plug-in `kubectl claimguard`, too, by
 * kubectl_complete-claimguard.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CLI_COMPLETE_H
#define EXTENDER_CLI_COMPLETE_H

#include <stddef.h>

/* words: behind the program's name, the last of them is being typed. Returns an exit status. */
int complete_words(const char *const *words, size_t count);

#endif
