/*
 * scheduler_url: asks a running kube-scheduler for its configuration: GET /configz of its secure
 * port, or through the API server's proxy of pods, with the credentials of a kubeconfig.
 *
 * The certificate of a server on loopback is not checked, because kube-scheduler makes its own.
 * Elsewhere, the kubeconfig's authority has to have signed it, and there is no plain text:
 * credentials are sent to it.
 *
 * Threads: one.
 */
#ifndef EXTENDER_DOCTOR_SCHEDULER_URL_H
#define EXTENDER_DOCTOR_SCHEDULER_URL_H

#include "extender/doctor/scheduler_file.h"
#include "extender/inquiry/inquiry.h"

/* Whether it is no file: it begins with http:// or https://. */
bool scheduler_url_is(const char *text);

/* Reads it as scheduler_file_read reads a file. origin: where the kubeconfig is.
 * Errors: as kubeconfig_load and scheduler_file_read; ERROR_UNAVAILABLE: there is no such answer.
 */
int scheduler_url_read(struct scheduler_file *out, const char *url,
                       const struct inquiry_origin *origin, struct arena *arena, struct error *err);

#endif
