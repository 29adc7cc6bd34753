# chunkbench. `make run` needs gcc and make only; `make test` and `make check` say what else they want.
#
#   run       builds the static CLI and asks three questions of this directory's disk
#   test      Criterion tests and the CLI's, in parallel; ends in a line `N passed, N failed`
#   check     sanitizers, races, compilers, platforms, devices, kill -9, style; the same last line
#   ceilings  speed against what the machine can do at best, and against fio and SQLite
#   size      text, data, bss and worst stack of the core
#   install   header, binary and help text under DESTDIR and PREFIX
#   format    rewrites all C files in the one style
#   clean     removes build/

ifeq ($(origin CC),default)
CC = gcc
endif
BUILD = build
CFLAGS = -O2 -g
PREFIX = /usr/local
DESTDIR =

WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wcast-align -Wvla -Wundef -Werror
DEFINES = -DCKB_THREADS= -DCHUNKBENCH_BENCH=
COMPILE = $(CC) -std=gnu11 $(WARNINGS) $(DEFINES) -I. -Iplatform $(CFLAGS) $(COUNTED) -pthread -MMD -MP
LINK = $(CC) $(CFLAGS) -pthread

PLATFORM = $(patsubst platform/%.c,$(BUILD)/platform/%.o,$(wildcard platform/*.c))
LIBRARY = $(BUILD)/libchunkbench.a

# Programs of their own, without Criterion; what is left beside them and the tests are helpers of the tests.
PROGRAMS = ceilings race selftest
SOURCES = $(filter-out $(PROGRAMS:%=tests/%.c),$(wildcard tests/*.c))
TESTS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter tests/test_%,$(SOURCES)))
HELPERS = $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(filter-out tests/test_%,$(SOURCES)))

all: $(BUILD)/chunkbench

run: $(BUILD)/chunkbench
	$(BUILD)/chunkbench qualify

test:
	@tests/criterion.sh
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/chunkbench tests
	@tests/run.sh $(BUILD)

tests: $(TESTS)

check:
	@tests/check.sh

ceilings: $(BUILD)/tests/ceilings
	@tests/rivals.sh
	$(BUILD)/tests/ceilings

size:
	@tests/size.sh $(BUILD)

format:
	clang-format -i chunkbench.h main.c platform/*.[ch] tests/*.[ch]

install: $(BUILD)/chunkbench $(BUILD)/chunkbench.txt
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/doc/chunkbench
	install -m 644 chunkbench.h $(DESTDIR)$(PREFIX)/include/chunkbench.h
	install -m 755 $(BUILD)/chunkbench $(DESTDIR)$(PREFIX)/bin/chunkbench
	install -m 644 $(BUILD)/chunkbench.txt $(DESTDIR)$(PREFIX)/share/doc/chunkbench/chunkbench.txt

clean:
	rm -rf $(BUILD)

$(BUILD)/chunkbench: $(BUILD)/main.o $(LIBRARY)
	$(LINK) $(STATIC) -o $@ $^
STATIC = -static

$(BUILD)/chunkbench.txt: $(BUILD)/chunkbench
	$< --help >$@
	for command in $$($< --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do echo; $< $$command --help || exit; done >>$@

# An archive: a test that compiles the implementation into itself does not get it twice.
$(LIBRARY): $(BUILD)/chunkbench.o $(PLATFORM)
	rm -f $@
	$(AR) rcs $@ $^

# The implementation is the header itself, compiled once.
$(BUILD)/chunkbench.o: chunkbench.h | $(BUILD)/tests
	$(COMPILE) -DCHUNKBENCH_IMPLEMENTATION -x c -c -o $@ $<

$(BUILD)/main.o: main.c | $(BUILD)/tests
	$(COMPILE) -c -o $@ $<

$(BUILD)/platform/%.o: platform/%.c | $(BUILD)/tests
	$(COMPILE) -c -o $@ $<

$(BUILD)/tests/%.o: tests/%.c | $(BUILD)/tests
	$(COMPILE) -c -o $@ $<

# Its basic blocks are counted, see tests/work.h.
$(BUILD)/tests/test_log_scale.o: COUNTED = -fsanitize-coverage=trace-pc

$(TESTS): $(BUILD)/tests/test_%: $(BUILD)/tests/test_%.o $(HELPERS) $(LIBRARY)
	$(LINK) -o $@ $^ -lcriterion -lm

$(PROGRAMS:%=$(BUILD)/tests/%): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIBRARY)
	$(LINK) -o $@ $^

$(BUILD)/tests:
	mkdir -p $(BUILD)/tests $(BUILD)/platform

.PHONY: all run test tests check ceilings size format install clean
.SECONDARY:
-include $(wildcard $(BUILD)/*.d $(BUILD)/*/*.d)
