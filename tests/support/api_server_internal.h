/*
 * The parts of api_server: connections and answers (api_server.c), HTTP without state (api_wire.c),
 * watches (api_watch.c), and what a test says and counts (api_control.c).
 */
#ifndef TESTS_SUPPORT_API_SERVER_INTERNAL_H
#define TESTS_SUPPORT_API_SERVER_INTERNAL_H

#include <pthread.h>

#include "support/api_store.h"

enum {
    FAULTS_MAX = 64,
    RESOURCES_MAX = 16,
    DESCRIPTORS_MAX = 8192,
    TICK_MS = 20,
};

struct api_request_seen {
    struct api_request_head head;
    char *body; /* "" when there is none */
};

/* A request that came, for api_count. */
struct api_record {
    char *method, *target, *body;
};

struct api_watched {
    char resource[64];
    unsigned cuts; /* how often its watches were cut */
    size_t open;   /* watches */
};

struct api_state {
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    uint16_t port;
    struct api_store store;
    struct api_fault faults[FAULTS_MAX];
    unsigned hits[FAULTS_MAX];
    size_t fault_count;
    struct api_record *records;
    size_t record_count;
    const char *held[RESOURCES_MAX];
    struct api_watched watched[RESOURCES_MAX];
    unsigned let_go; /* how often those that hang were closed */
    size_t connections, connections_max, connections_ever;
    bool is_open[DESCRIPTORS_MAX]; /* connections */
    bool is_down;                  /* nobody is to listen */
    bool is_listening;
};
extern struct api_state api;

/* api_unlock wakes those who wait for a change. */
void api_lock(void);
void api_unlock(void);

/* Ends the test with what errno says. */
void api_die(const char *what);

void api_pause_ms(int ms);

/* ---- api_wire ---- */

/* False: the peer is gone. */
bool api_send_all(int fd, const char *bytes, size_t len);
bool api_send_answer(int fd, unsigned status, const char *body);
bool api_send_chunk(int fd, const char *line);

/* False: the connection is over. Ownership: the body is the caller's. */
bool api_read_request(int fd, struct api_request_seen *out);
bool api_is_closed(int fd);

/* ---- api_watch ---- */

/* Answers a watch, until its end. False: the connection is to be closed. */
bool api_serve_watch(int fd, const struct api_path *path);

/* Under the mutex. */
struct api_watched *api_watched_of(const char *resource);

/* ---- api_control; under the mutex ---- */

/* Keeps the request, to be counted. */
void api_note(const struct api_request_seen *request);

/* The fault that hits the request. False: none. */
bool api_find_fault(const struct api_request_seen *request, struct api_fault *out);

#endif
