/*
 * serve_reload: the configuration file while `serve` runs: read again when it changes, and put in
 * force once what it needs is synced. Some values take effect only at a start; a changed one is
 * reported.
 *
 * Threads: the main one.
 */
#ifndef EXTENDER_CLI_SERVE_RELOAD_H
#define EXTENDER_CLI_SERVE_RELOAD_H

#include "config/base/file.h"
#include "extender/cli/commands.h"
#include "extender/serving/state.h"

enum fixed_value { FIXED_ADDRESSES, FIXED_TLS, FIXED_ADMISSION, FIXED_COUNT };

struct reload {
    const struct arguments *arguments;
    struct file_mark read_as;             /* the configuration file just before it was read */
    struct buf started_with[FIXED_COUNT]; /* the fixed values at the start, as text */
    struct config *next;                  /* was read, and waits for what it needs; NULL: none */
};

/* config: the one of the start, which was read when the file was `read_as`. */
void reload_init(struct reload *reload, const struct arguments *arguments, struct file_mark read_as,
                 const struct config *config);
void reload_dispose(struct reload *reload);

/* Reads the configuration file, and puts it in force if it is good. Otherwise the old configuration
 * stays, and the error is logged, but not twice in a row. *refusal: the error of the last reload,
 * or an empty message; it becomes that of this reload. */
void reload_run(struct reload *reload, struct state *state, struct error *refusal);

/* Puts the configuration that was read in force, once what it needs is synced. Whether it did. */
bool reload_try_next(struct reload *reload, struct state *state);

/* Reads the files of the admission port. *out is NULL if the configuration does not serve it. */
int reload_open_admission(struct tls **out, const struct config *config, struct error *err);

#endif
