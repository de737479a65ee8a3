#include "extender/commands/certificates/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/base/file.h"

enum { CRT, KEY, PARTS };
enum { FOLDER_MODE = 0755, CRT_MODE = 0644, KEY_MODE = 0600, KEY_MODE_MOST = 0660 };

static const char *const names[CERTIFICATE_COUNT][PARTS] = {
    {"ca.crt", "ca.key"}, {"tls.crt", "tls.key"}, {"client.crt", "client.key"}};

static int set_paths(struct folder *out, const char *path, struct error *err)
{
    for (int i = 0; i < CERTIFICATE_COUNT; i++)
        for (int part = 0; part < PARTS; part++)
            if (snprintf(out->paths[i][part], PATH_MAX, "%s/%s", path, names[i][part]) >= PATH_MAX)
                return error_set(err, ERROR_TOO_BIG, "the path of the folder is too long");
    return 0;
}

int folder_open(struct folder *out, const char *path, bool is_dry_run, struct error *err)
{
    out->fd = -1;
    if (set_paths(out, path, err) < 0)
        return err->code;
    if (!is_dry_run && mkdir(path, FOLDER_MODE) != 0 && errno != EEXIST)
        return error_system(err, errno, "%s", path);
    out->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0)
        return is_dry_run && errno == ENOENT ? 0 : error_system(err, errno, "%s", path);
    if (flock(out->fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    int problem = errno;
    folder_close(out);
    return problem == EWOULDBLOCK
               ? error_set(err, ERROR_UNAVAILABLE,
                           "%s: another claimguard certificates is at work in it", path)
               : error_system(err, problem, "%s", path);
}

void folder_close(struct folder *folder)
{
    if (folder->fd >= 0)
        (void)close(folder->fd); /* ends the lock */
    folder->fd = -1;
}

/* ---- reading ---- */

/* *out stays NULL if there is no such file. */
static int read_text(char **out, const char *path, struct error *err)
{
    struct stat status;
    size_t length = 0;

    if (lstat(path, &status) != 0 && errno == ENOENT)
        return 0;
    char *text = calloc(1, PEM_BYTES_MAX + 1);
    if (text == NULL)
        return error_no_memory(err);
    int rc = file_read(path, text, PEM_BYTES_MAX + 1, &length, err);
    if (rc == 0 && length > PEM_BYTES_MAX)
        rc = error_set(err, ERROR_TOO_BIG, "%s: over %d bytes", path, PEM_BYTES_MAX);
    if (rc == 0)
        *out = text;
    else
        free(text);
    return rc;
}

int folder_read(const struct folder *folder, struct certificates *out, struct error *err)
{
    int rc = 0;

    *out = (struct certificates){.entries = {{.until_s = 0}}};
    for (int i = 0; i < CERTIFICATE_COUNT && rc == 0; i++) {
        struct pem_pair *pair = &out->entries[i].pair;
        pair->crt_name = folder->paths[i][CRT];
        pair->key_name = folder->paths[i][KEY];
        if (folder->fd >= 0)
            rc = read_text(&pair->crt, pair->crt_name, err);
        if (folder->fd >= 0 && rc == 0)
            rc = read_text(&pair->key, pair->key_name, err);
    }
    return rc;
}

/* ---- writing ---- */

/* A file that is written, and gets its name later. */
struct partial {
    char path[PATH_MAX + 16];
    const char *final; /* NULL: there is none */
};

/* Writes all of the text, and waits until it is on the disk. */
static int put_text(int fd, const char *text)
{
    size_t length = strlen(text);

    while (length != 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno != EINTR)
            return -1;
        text += written < 0 ? 0 : written;
        length -= written < 0 ? 0 : (size_t)written;
    }
    return fsync(fd);
}

/* As the file that is replaced is, so that its readers can read the new one. */
static int set_owner_and_mode(int fd, const char *final, bool is_key)
{
    mode_t mode = is_key ? KEY_MODE : CRT_MODE;
    struct stat old, new;

    if (stat(final, &old) == 0) {
        mode = old.st_mode & (is_key ? KEY_MODE_MOST : 0777);
        if (fstat(fd, &new) != 0 || ((old.st_uid != new.st_uid || old.st_gid != new.st_gid) &&
                                     fchown(fd, old.st_uid, old.st_gid) != 0))
            return -1;
    }
    return fchmod(fd, mode);
}

static int write_partial(struct partial *out, const char *final, const char *text, bool is_key,
                         struct error *err)
{
    (void)snprintf(out->path, sizeof out->path, "%s.partial", final);
    (void)unlink(out->path); /* of a process that was killed */
    int fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, KEY_MODE);
    if (fd < 0)
        return error_system(err, errno, "%s", out->path);
    out->final = final;
    int rc = set_owner_and_mode(fd, final, is_key) != 0 || put_text(fd, text) != 0
                 ? error_system(err, errno, "%s", out->path)
                 : 0;
    if (close(fd) != 0 && rc == 0)
        rc = error_system(err, errno, "%s", out->path);
    return rc;
}

/* Gives the file its name. A new authority's must not be there. */
static int publish(struct partial *partial, bool is_new, struct error *err)
{
    int rc = is_new ? link(partial->path, partial->final) : rename(partial->path, partial->final);

    if (rc != 0)
        return error_system(err, errno, "%s", partial->final);
    if (!is_new)
        partial->final = NULL; /* else the first name is left to discard */
    return 0;
}

static void discard(const struct partial *partial)
{
    if (partial->final != NULL)
        (void)unlink(partial->path);
}

/* Both files are written before either gets its name, so that a reader hardly ever finds a key
 * beside another certificate. A renewed authority has its old key. */
static int write_pair(const struct certificate_entry *entry, bool is_authority, struct error *err)
{
    struct partial crt = {.final = NULL}, key = {.final = NULL};
    bool is_new = is_authority && entry->action == ACTION_CREATED;
    bool has_key = !is_authority || is_new;

    int rc = write_partial(&crt, entry->pair.crt_name, entry->pair.crt, false, err);
    if (rc == 0 && has_key)
        rc = write_partial(&key, entry->pair.key_name, entry->pair.key, true, err);
    if (rc == 0 && has_key)
        rc = publish(&key, is_new, err);
    if (rc == 0)
        rc = publish(&crt, is_new, err);
    discard(&key);
    discard(&crt);
    return rc;
}

int folder_write(const struct folder *folder, const struct certificates *certificates,
                 struct error *err)
{
    for (int i = 0; i < CERTIFICATE_COUNT; i++) {
        const struct certificate_entry *entry = &certificates->entries[i];
        if (entry->action != ACTION_KEPT && write_pair(entry, i == CERTIFICATE_AUTHORITY, err) < 0)
            return err->code;
    }
    if (fsync(folder->fd) != 0)
        return error_system(err, errno, "the folder");
    return 0;
}
