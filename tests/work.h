/* How much the code of one file does, without a clock: that file is compiled with -fsanitize-coverage=trace-pc
 * (see the Makefile), and every basic block of it that runs is counted. */
#ifndef CKB_TESTS_WORK_H
#define CKB_TESTS_WORK_H

#include <stdint.h>

/* Basic blocks so far, of one thread at a time. */
extern uint64_t work_blocks;

#endif
