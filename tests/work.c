#include "work.h"

uint64_t work_blocks;

void __sanitizer_cov_trace_pc(void);

/* Called by the compiler's instrumentation at every basic block. */
void __sanitizer_cov_trace_pc(void)
{
    work_blocks++;
}
