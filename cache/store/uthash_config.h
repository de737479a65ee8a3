/* uthash without exit: if an insertion finds no memory, the element's hh.tbl is NULL. Include this,
 * never <uthash.h>. */
#ifndef CACHE_STORE_UTHASH_CONFIG_H
#define CACHE_STORE_UTHASH_CONFIG_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
