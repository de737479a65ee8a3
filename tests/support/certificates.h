/* certificates: made when a test needs them, so that none in the tree can expire. */
#ifndef TESTS_SUPPORT_CERTIFICATES_H
#define TESTS_SUPPORT_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

struct certificate {
    const char *name;     /* its common name; its files are FOLDER/NAME.crt and FOLDER/NAME.key */
    const char *issuer;   /* whose files are there already; NULL: itself */
    bool is_authority;    /* may sign others */
    bool is_for_clients;  /* else, for servers; authorities: for all */
    int begins_s, ends_s; /* from now on; both 0: a day around now */
};

enum { CERTIFICATES_FOLDER_BYTES = 32, CERTIFICATES_PATH_BYTES = 128 };

/* Makes them, for 127.0.0.1, in a new folder, whose path it writes; aborts when one cannot be made.
 */
void certificates_make(char folder[CERTIFICATES_FOLDER_BYTES],
                       const struct certificate *certificates, size_t count);

/* Removes the folder and all that is in it. */
void certificates_remove(const char *folder);

/* Writes the path of a file in the folder. */
void certificates_path(char path[CERTIFICATES_PATH_BYTES], const char *folder, const char *file);

#endif
