/*
 * kubeconfig: how to reach an API server and who we are there, from a kubeconfig file (or several,
 * merged as kubectl does: the first that says something wins) or from a pod's service account.
 *
 * What is understood: clusters (server, certificate-authority, insecure-skip-tls-verify,
 * tls-server-name, proxy-url), users (client certificate and key, token, tokenFile, exec) and
 * contexts; certificates as files or `-data`. What would change who we are and is not understood
 * (impersonation, basic auth, auth-provider) is an error, not overlooked; other keys are.
 *
 * A struct kubeconfig does not change once it is loaded. Files that rotate (tokens, certificates)
 * are named here and read where they are used (cache/api).
 */
#ifndef CACHE_CLIENT_KUBECONFIG_H
#define CACHE_CLIENT_KUBECONFIG_H

#include "config/base/arena.h"
#include "config/base/error.h"

/* PEM text, in a file or here; neither: there is none. */
struct pem {
    const char *file;
    struct slice data;
};

/* A credential plugin. */
struct exec_plugin {
    const char *api_version; /* client.authentication.k8s.io/v1, or v1beta1: the same but for its
                                name, and what `aws eks update-kubeconfig` writes */
    const char **argv;       /* ends with NULL; argv[0] is the command. NULL: no plugin */
    const char **env;        /* "NAME=value", ends with NULL: they go before our own */
    const char *install_hint;
    bool wants_cluster_info;
};

struct kubeconfig {
    struct arena arena;      /* holds all of the below */
    const char *origin;      /* for messages: the file of the context, or "the service account" */
    const char *server;      /* https://host:port, without a slash at the end */
    const char *server_name; /* that the certificate must have; NULL: the server's host */
    const char *proxy_url;   /* NULL: as the environment says; "": none */
    bool skips_verification;
    struct pem ca; /* none: the system's */
    struct pem cert, key;
    const char *token;      /* NULL: none */
    const char *token_file; /* NULL: none; goes before token */
    struct exec_plugin exec;
};

/*
 * Reads the configuration: of `path`; else of the files in $KUBECONFIG; else the service account of
 * the pod that this process runs in; else, when may_use_home, of ~/.kube/config. context: NULL for
 * the file's current one.
 *
 * Ownership: kubeconfig_free.
 * Errors: ERROR_INVALID "FILE:LINE:COL: field: what is wrong"; ERROR_SYSTEM; ERROR_NOT_FOUND when
 * there is no configuration anywhere.
 */
int kubeconfig_load(struct kubeconfig **out, const char *path, const char *context,
                    bool may_use_home, struct error *err);
void kubeconfig_free(struct kubeconfig *kubeconfig);

#endif
