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
    struct slice exclude; /* patterns, joined by ',' */
    struct slice ignore;  /* entries as in the annotation, joined by line breaks; good ones */
    const char *baseline; /* a path, from where the command runs; NULL: none */
    enum level fail_on;   /* unchanged if the file does not say */
};

/* Errors: as yaml_load; ERROR_INVALID "FILE:LINE:COL: ..." for what is no setting. */
int settings_read(struct audit_settings *settings, const char *path, struct arena *arena,
                  struct error *err);

/* Whether one of the patterns, joined by ',', is about the path: it matches the path, or the last
 * name in it. '*' matches any characters, also '/'. */
bool settings_exclude(struct slice patterns, const char *path);

#endif
