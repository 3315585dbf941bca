package protocol

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// Now returns the nanoseconds of the monotonic clock, which all processes of a machine share.
func Now() int64 {
	var time unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &time); err != nil {
		panic(err)
	}
	return time.Nano()
}

// Latencies of single operations, in nanoseconds.
type Latencies []int64

// Percentile returns the latency in microseconds at or below which a fraction of all lie (nearest
// rank); zero if there are none.
func (latencies Latencies) Percentile(fraction float64) float64 {
	if len(latencies) == 0 {
		return 0
	}
	slices.Sort(latencies)
	rank := max(int(math.Ceil(float64(len(latencies))*fraction)), 1)
	return float64(latencies[rank-1]) / 1e3
}

// Mean returns the mean in microseconds; zero if there are none.
func (latencies Latencies) Mean() float64 {
	var sum float64
	for _, each := range latencies {
		sum += float64(each)
	}
	return sum / 1e3 / float64(max(len(latencies), 1))
}
