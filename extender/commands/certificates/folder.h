/*
 * folder: the certificates as PEM files of a folder: ca.crt and ca.key, tls.crt and tls.key of the
 * server, client.crt and client.key. A file appears whole, under its name, after it is on the disk.
 * New keys have mode 0600, new certificates 0644; a file that is replaced keeps its mode (of a key:
 * without the rights of others) and its owner. A new authority never replaces a file.
 *
 * Threads: one. Only one process at a time works in a folder.
 */
#ifndef EXTENDER_COMMANDS_CERTIFICATES_FOLDER_H
#define EXTENDER_COMMANDS_CERTIFICATES_FOLDER_H

#include <limits.h>

#include "extender/commands/certificates/refresh.h"

struct folder {
    int fd;                                     /* -1: it does not exist, and is not to be made */
    char paths[CERTIFICATE_COUNT][2][PATH_MAX]; /* of a certificate, of its key */
};

/* Makes the folder if it is missing, unless is_dry_run. Errors: ERROR_SYSTEM; ERROR_UNAVAILABLE:
 * another process works in it. Ownership: folder_close. */
int folder_open(struct folder *out, const char *path, bool is_dry_run, struct error *err);
void folder_close(struct folder *folder);

/* Reads what is there. The names of the pairs lie in the folder.
 * Errors: ERROR_SYSTEM, ERROR_TOO_BIG; certificates_wipe is needed in any case. */
int folder_read(const struct folder *folder, struct certificates *out, struct error *err);

/* Writes what was made. Errors: ERROR_SYSTEM; what was written before stays, and the next call
 * continues with it. */
int folder_write(const struct folder *folder, const struct certificates *certificates,
                 struct error *err);

#endif
