// Package protocol is the protocol between benchmark programs in Go and the runner, like the Rust
// crate beside it. The row arrives as JSON in the environment, as the runner read it from the
// scenario files.
package protocol

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

// The row, as the system is to run it.
const rowVariable = "ONWARD_BENCH_ROW"

// Backlog is the content of the store before the timed part.
type Backlog struct {
	Delayed  int `json:"delayed"`
	Unserved int `json:"unserved"`
	Runnable int `json:"runnable"`
}

// Row is one row of the benchmarks, with the fields that programs in Go need.
type Row struct {
	Name         string         `json:"name"`
	Workload     string         `json:"workload"`
	Unit         string         `json:"unit"`
	Better       string         `json:"better"`
	Count        int            `json:"count"`
	Slots        int            `json:"slots"`
	Submitters   int            `json:"submitters"`
	Batch        int            `json:"batch"`
	PayloadBytes int            `json:"payload_bytes"`
	Rate         int            `json:"rate"`
	Queues       string         `json:"queues"`
	Mode         string         `json:"mode"`
	Producer     string         `json:"producer"`
	Backlog      Backlog        `json:"backlog"`
	Expect       map[string]any `json:"expect"`
}

// Request is a request to run one row.
type Request struct {
	Row        Row
	Durability string
	Settings   string
	// Directory is the directory of files.
	Directory string
	// Postgres is the URL of the run's server, for rows on PostgreSQL.
	Postgres string
	json     bool
}

// NewRequest reads the arguments and the environment.
func NewRequest() (*Request, error) {
	request := &Request{}
	name := flag.String("row", "", "the row to do")
	flag.StringVar(&request.Durability, "durability", "", "what an acknowledgement must survive")
	flag.StringVar(&request.Settings, "settings", "default", "the name of the settings")
	flag.StringVar(&request.Directory, "directory", os.TempDir(), "where files go")
	flag.StringVar(&request.Postgres, "postgres", "", "the PostgreSQL server of the run")
	flag.BoolVar(&request.json, "json", false, "print one JSON object")
	// The runner has already applied these fields, or reads them itself.
	flag.Bool("quick", false, "the row is a quick one")
	flag.String("scenarios", "", "not read")
	flag.String("commits", "", "not read")
	flag.Parse()
	text := os.Getenv(rowVariable)
	if text == "" {
		return nil, errors.New("the row is missing: this program is started by bench/runner")
	}
	if err := json.Unmarshal([]byte(text), &request.Row); err != nil {
		return nil, fmt.Errorf("%s: %w", rowVariable, err)
	}
	if request.Row.Name != *name {
		return nil, fmt.Errorf("asked for row %s and given %s", *name, request.Row.Name)
	}
	return request, nil
}

// verify compares the observed facts with those that the row expects.
func (row *Row) verify(observed map[string]int) error {
	for name, expected := range row.Expect {
		number, observed := row.Count, observed[name]
		switch expected := expected.(type) {
		case float64:
			number = int(expected)
		case string:
			if expected != "count" {
				return fmt.Errorf("row %s: `%s` is not a field to compare with", row.Name, expected)
			}
		}
		if observed != number {
			return fmt.Errorf("row %s: `%s` should be %d and is %d", row.Name, name, number, observed)
		}
	}
	return nil
}
