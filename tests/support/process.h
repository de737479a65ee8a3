/*
 * process: runs the real claimguard, as a command or as a server on free ports.
 * Needs CLAIMGUARD_BINARY in the environment (ctest sets it).
 */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PROCESS_ARGUMENTS_MAX = 16,
    /* What a client may make the server keep beyond what it has at its start, at its peak: the
     * limit that manifests/deployment.yaml sets is 256 MiB. In every kind of build: a sanitizer's
     * shadow adds an eighth, and process_keep_sanitizer_small takes care of the rest. */
    GROWTH_MIB_MAX = 200,
};

/* Runs it with the arguments (up to NULL) and standard input from a file (NULL: none). Returns the
 * exit status, or -1. Ownership: *out and *err are the caller's to free. */
int process_run(const char *const *arguments, const char *input, char **out, char **err);

struct daemon {
    pid_t pid;
    int log; /* its stderr */
    uint16_t port, metrics_port;
};

/* Starts `serve` on free ports with further arguments (up to NULL); false when it did not start. */
bool daemon_start(struct daemon *daemon, const char *const *arguments);

/* SIGTERM; returns the exit status, or -1. */
int daemon_stop(struct daemon *daemon);

/* VmRSS or VmHWM, the most so far. */
long daemon_memory_mib(const struct daemon *daemon, const char *field);

/* Under AddressSanitizer, those that are started from now on give back what they free, and have one
 * stack a thread: a second one, which finds uses after return, takes 3 MiB of each connection. */
void process_keep_sanitizer_small(void);

/* Waits until the log has a line with this text; false when it has none for twenty seconds. */
bool daemon_wait_for(struct daemon *daemon, const char *text);

/* The file's text, NUL-terminated; aborts when there is none. Ownership: the caller's to free. */
char *read_file(const char *path);

/* The same, of a file in a folder. */
char *read_file_in(const char *folder, const char *file);

#endif
