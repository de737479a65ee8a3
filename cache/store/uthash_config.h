/* uthash, set up as we want it: an insertion that finds no memory does not exit the process; the
 * element's hh.tbl is NULL then. Include this, never <uthash.h>. */
#ifndef CACHE_STORE_UTHASH_CONFIG_H
#define CACHE_STORE_UTHASH_CONFIG_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
