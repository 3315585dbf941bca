#!/bin/sh
# A worker without a library: `onward work --kind upper -- ./worker.sh` runs it once for each task. The
# payload is the standard input, the standard output is the result.
tr a-z A-Z
