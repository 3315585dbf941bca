package protocol

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Measurement is the measurement of one row in one run.
type Measurement struct {
	Value      float64
	Latencies  Latencies
	Observed   map[string]int
	Lost       int
	Duplicated int
	// Settings are the settings to print, if they state more than the requested ones.
	Settings string
	Extra    map[string]float64
}

type line struct {
	Row        string             `json:"row"`
	Durability string             `json:"durability"`
	System     string             `json:"system"`
	Settings   string             `json:"settings"`
	Value      float64            `json:"value"`
	Unit       string             `json:"unit"`
	Better     string             `json:"better"`
	Min        float64            `json:"min"`
	Max        float64            `json:"max"`
	P50        *float64           `json:"p50"`
	P99        *float64           `json:"p99"`
	P999       *float64           `json:"p999,omitempty"`
	Runs       int                `json:"runs"`
	Lost       int                `json:"lost"`
	Duplicated int                `json:"duplicated"`
	CPUSeconds float64            `json:"cpu_seconds"`
	PeakMiB    float64            `json:"peak_mib"`
	Extra      map[string]float64 `json:"extra,omitempty"`
}

// Run is the main function of a program: it reads the request, runs the row, checks the observed
// facts and prints the line. Work that measures nothing, such as a producer's, prints its own
// output.
func Run(system string, work func(*Request) (*Measurement, error)) {
	if err := run(system, work); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(system string, work func(*Request) (*Measurement, error)) error {
	request, err := NewRequest()
	if err != nil {
		return err
	}
	measured, err := work(request)
	if err != nil || measured == nil {
		return err
	}
	if err := request.Row.verify(measured.Observed); err != nil {
		return err
	}
	line := lineOf(system, request, measured)
	text, err := json.Marshal(line)
	if !request.json {
		text, err = json.MarshalIndent(line, "", "    ")
	}
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}

func lineOf(system string, request *Request, measured *Measurement) *line {
	cpu, peak := usage()
	settings := request.Settings
	if measured.Settings != "" {
		settings = measured.Settings
	}
	percentile := func(fraction float64) *float64 {
		if len(measured.Latencies) == 0 {
			return nil
		}
		value := measured.Latencies.Percentile(fraction)
		return &value
	}
	return &line{
		Row: request.Row.Name, Durability: request.Durability, System: system, Settings: settings,
		Value: measured.Value, Unit: request.Row.Unit, Better: request.Row.Better,
		Min: measured.Value, Max: measured.Value,
		P50: percentile(0.5), P99: percentile(0.99), P999: percentile(0.999),
		Runs: 1, Lost: measured.Lost, Duplicated: measured.Duplicated,
		CPUSeconds: cpu.Seconds(), PeakMiB: peak, Extra: measured.Extra,
	}
}

// usage returns the CPU time and the peak memory in MiB of this process and of the processes that
// it started and waited for, such as a server.
func usage() (time.Duration, float64) {
	var cpu time.Duration
	var peak float64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano())
			peak += float64(used.Maxrss) / 1024
		}
	}
	return cpu, peak
}
