/*
 * good_server: an API server that answers correctly. It only lists: watches and next pages fail.
 */
#ifndef TESTS_FUZZ_GOOD_SERVER_H
#define TESTS_FUZZ_GOOD_SERVER_H

#include "cache/watch/reflector.h"

enum { GOOD_NAMES = 2 };

/* What its lists name, in namespace "n" where the kind has namespaces. */
extern const char *const good_names[GOOD_NAMES];

/* Answers the reflector's next request. */
void good_server_answer(struct reflector *reflector);

#endif
