/*
 * settings: .claimguard-audit.yaml, how a repository is audited:
 *
 *     exclude: [charts/old, "*.gen.yaml"]
 *     ignore: ["CG103: rolled out by hand"]
 *     failOn: error
 *     baseline: audit-baseline.txt
 *
 * All keys may be left out. Ownership: texts are in the arena. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_SETTINGS_H
#define EXTENDER_COMMANDS_AUDIT_SETTINGS_H

#include "config/base/arena.h"
#include "extender/report/findings.h"

#define SETTINGS_NAME ".claimguard-audit.yaml"

struct audit_settings {
    const char *path;     /* NULL: there are none */
    struct slice exclude; /* patterns, joined by ',' */
    struct slice ignore;  /* entries as in the annotation, joined by line breaks; good ones */
    const char *baseline; /* a path, from where the command runs; NULL: none */
    enum level fail_on;   /* unchanged if the file does not say */
};

/* Finds the settings of a file or folder that is audited: its own; else those of the nearest folder
 * above, up to the root of its git repository, or to where the command runs. NULL in *out: there
 * are none. Errors: ERROR_NO_MEMORY. */
int settings_find(const char **out, const char *path, struct arena *arena, struct error *err);

/* The folder, from that of the settings: "deploy/"; empty: it is that, or not in it. NULL: no
 * memory. */
const char *settings_prefix(const struct audit_settings *settings, const char *folder,
                            struct arena *arena);

/* Errors: as yaml_load; ERROR_INVALID "FILE:LINE:COL: ..." for what is no setting. */
int settings_read(struct audit_settings *settings, const char *path, struct arena *arena,
                  struct error *err);

/* Whether one of the patterns is about the path in the folder of that prefix: it matches the path,
 * with the prefix or without it, or the last name in it. '*' matches any characters, also '/'. */
bool settings_exclude(const struct audit_settings *settings, const char *prefix, const char *path);

#endif
