/*
 * examine: what `doctor` and `verify` read, by their options: files of schedulers, claimguard's
 * configuration, the cluster; and the rules of extender/commands/doctor about it.
 *
 *     extern const struct arguments *arguments;
 *     struct examination *examination = NULL;
 *     int rc = examination_open(&examination, arguments, "doctor", err);
 *     if (rc == 0)
 *         rc = examination_read(examination, err);
 *     if (rc == 0)
 *         rc = examination_check(examination, err);
 *
 * Threads: one.
 */
#ifndef EXTENDER_CLI_EXAMINE_H
#define EXTENDER_CLI_EXAMINE_H

#include "extender/cli/commands.h"
#include "extender/commands/doctor/doctor.h"

enum { EXAMINED_FILES_MAX = 64 };

/* All is in the arena, but the configuration. */
struct examination {
    const struct arguments *arguments;
    unsigned outputs;   /* formats that --output may name */
    bool needs_cluster; /* it is read also if only files are named */
    enum output_format format;
    struct inquiry_origin origin;
    struct arena arena;
    struct scheduler_file schedulers[EXAMINED_FILES_MAX];
    size_t scheduler_count;
    struct config *config;
    bool is_config_wrong; /* that of the cluster */
    struct config_file config_file;
    struct installation installation;
    bool has_installation;
    struct certificates_read certificates;
    struct rights rights; /* of a live cluster */
    struct findings findings;
};

/* Ownership: examination_close, unless there is no memory. The arguments are borrowed; command, for
 * messages, is a static string. */
int examination_open(struct examination **out, const struct arguments *arguments,
                     const char *command, struct error *err);
void examination_close(struct examination *examination);

/* Errors: bad usage, or what cannot be read. */
int examination_read(struct examination *examination, struct error *err);

/* Adds what the rules find. Errors: no memory. */
int examination_check(struct examination *examination, struct error *err);

#endif
