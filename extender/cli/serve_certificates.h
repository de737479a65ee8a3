/*
 * serve_certificates: certificates: Secrets. A thread keeps the certificates of the cluster
 * (extender/commands/certificates/keeper), and gives them to the ports.
 *
 * Threads: the main one.
 */
#ifndef EXTENDER_CLI_SERVE_CERTIFICATES_H
#define EXTENDER_CLI_SERVE_CERTIFICATES_H

#include "extender/serving/state.h"

/* Opens the ports' TLS as the configuration says: state->tls and admission_tls. Ownership: the
 * state's; close_certificates. */
int open_certificates(struct state *state, struct error *err);
void close_certificates(struct state *state);

struct certificates_thread;

/* Starts the thread, if the configuration asks for it; else *out is NULL. ns: of the Secrets.
 * Needs state->api. Ownership: certificates_stop, which accepts NULL, after requests_interrupt. */
int certificates_start(struct certificates_thread **out, struct state *state, struct slice ns,
                       struct error *err);
void certificates_stop(struct certificates_thread *thread);

#endif
