/*
 * every_metric: a claimguard that has a sample of each metric, and files in the scenario's folder
 * for those who read its page.
 */
#ifndef TESTS_SUPPORT_EVERY_METRIC_H
#define TESTS_SUPPORT_EVERY_METRIC_H

#include <stdio.h>

#include "support/scenario.h"

/* A GET of a pod from the API server. It was answered with 200, 503 and not at all ("error"). */
#define POD_GETS(code_) \
    "claimguard_apiserver_requests_total{verb=\"get\",resource=\"pods\",code=\"" code_ "\"}"

/* It serves over TLS, also admission, with a certificate for a month. It has bound a pod with a
 * deferred mount, and is well; its API server does not serve one of the resources. */
void every_metric_start(struct guard *guard);

/* A file of the scenario's folder, to be written. */
FILE *scenario_open(const char *name);

/* Runs a command of the shell there; the scenario has failed when that fails. */
void scenario_run(const char *command);

/* Writes the rules of manifests/monitoring there, as the file rules.yaml that Prometheus reads. */
void scenario_write_rules(void);

/* Lines of its page: the one behind; NULL: there is none. And how long one is. */
const char *page_next_line(const char *line);
int page_line_len(const char *line);

#endif
