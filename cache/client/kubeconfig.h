/*
 * kubeconfig: how to reach an API server, and the identity to use there. It is read from one or
 * several kubeconfig files (merged as in kubectl: the first file with an entry wins), or from the
 * pod's service account.
 *
 * Supported are clusters (server, certificate-authority, insecure-skip-tls-verify, tls-server-name,
 * proxy-url), users (client certificate and key, token, tokenFile, exec) and contexts; certificates
 * as files or `-data`. Keys that would change the identity but are not supported (impersonation,
 * basic auth, auth-provider) are an error. Other keys are ignored.
 *
 * A struct kubeconfig does not change after it is loaded, so threads may share it. Files that
 * rotate (tokens, certificates) are only named here, and read when they are used (credentials).
 */
#ifndef CACHE_CLIENT_KUBECONFIG_H
#define CACHE_CLIENT_KUBECONFIG_H

#include "config/base/arena.h"
#include "config/base/error.h"

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* PEM text: the name of a file, or the text itself, or neither. */
struct pem {
    const char *file;
    struct slice data;
};

/* A credential plugin. */
struct exec_plugin {
    const char *api_version; /* client.authentication.k8s.io/v1; or v1beta1, which has the same
                                fields and is what `aws eks update-kubeconfig` writes */
    const char **argv;       /* ends with NULL; argv[0] is the command. NULL: no plugin */
    const char **env;        /* "NAME=value", ends with NULL; they replace our own variables */
    const char *install_hint;
    bool wants_cluster_info;
};

struct kubeconfig {
    struct arena arena;      /* all strings below lie here */
    const char *origin;      /* for messages: the file of the context, or "the service account" */
    const char *ns;          /* of the context; NULL: it sets none */
    const char *server;      /* https://host:port, without a slash at the end */
    const char *server_name; /* name in the server's certificate; NULL: the host of `server` */
    const char *proxy_url;   /* NULL: use the environment's; "": none */
    bool skips_verification;
    struct pem ca; /* empty: use the system's */
    struct pem cert, key;
    const char *token;      /* NULL: none */
    const char *token_file; /* NULL: none; has priority over token */
    struct exec_plugin exec;
};

/*
 * Reads the configuration from `path`; if it is NULL, from the files in $KUBECONFIG; without these,
 * from the service account of this process's pod; outside of a pod, if may_use_home, from
 * ~/.kube/config. context: NULL for the file's current-context.
 *
 * Ownership: kubeconfig_free.
 * Errors: ERROR_INVALID "FILE:LINE:COL: field: what is wrong"; ERROR_SYSTEM; ERROR_NOT_FOUND when
 * there is no configuration.
 */
int kubeconfig_load(struct kubeconfig **out, const char *path, const char *context,
                    bool may_use_home, struct error *err);
void kubeconfig_free(struct kubeconfig *kubeconfig);

/* The names of the contexts in the files that kubeconfig_load would read, at most max. Files that
 * cannot be read have none. Ownership: the names are in the arena. */
size_t kubeconfig_contexts(const char *path, struct arena *arena, struct slice *names, size_t max);

#endif
