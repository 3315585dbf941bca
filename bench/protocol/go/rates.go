package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Order is the payload of a task.
type Order struct {
	Number    uint64 `json:"number"`
	Submitted uint64 `json:"submitted"`
	Note      string `json:"note"`
}

// Note fills a payload up to the row's size.
func (row *Row) Note() (string, error) {
	empty, err := json.Marshal(Order{})
	if err != nil || len(empty) > row.PayloadBytes {
		return "", fmt.Errorf("a payload needs at least %d bytes, not %d (%v)", len(empty), row.PayloadBytes, err)
	}
	return strings.Repeat("n", row.PayloadBytes-len(empty)), nil
}

// Payloads makes payloads of the row's size, which changes only by the digits of the number.
func (row *Row) Payloads() (func(number uint64) []byte, error) {
	note, err := row.Note()
	if err != nil {
		return nil, err
	}
	return func(number uint64) []byte {
		return fmt.Appendf(nil, `{"number":%d,"submitted":0,"note":"%s"}`, number, note)
	}, nil
}

// QueueName returns the name of the queue of a weight.
func QueueName(weight int) string {
	return fmt.Sprintf("weight-%d", weight)
}

// Weights returns the weights of all queues.
func (row *Row) Weights() []int {
	if row.Queues == "alone" {
		return []int{5}
	}
	return []int{1, 2, 3, 4, 5}
}

// UsedWeights returns the weights of the queues that receive a task at each arrival.
func (row *Row) UsedWeights() []int {
	if row.Queues == "all" {
		return row.Weights()
	}
	return []int{5}
}

// QueueWeights returns the weights of all queues by name.
func (row *Row) QueueWeights() map[string]int {
	queues := make(map[string]int)
	for _, weight := range row.Weights() {
		queues[QueueName(weight)] = weight
	}
	return queues
}

// Submitted is an accepted task: its number, the weight of its queue, its due time and the return
// of its submit.
type Submitted struct {
	Number, Weight int
	Due, Returned  int64
}

// Starts records the times at which the handlers of tasks started.
type Starts struct {
	at             []atomic.Int64
	started, again atomic.Int64
}

// NewStarts returns a record for tasks numbered from 0 to count - 1.
func NewStarts(count int) *Starts {
	return &Starts{at: make([]atomic.Int64, count)}
}

// Start records that the handler of the task with this payload starts now.
func (starts *Starts) Start(payload []byte) error {
	now := Now()
	var order Order
	if err := json.Unmarshal(payload, &order); err != nil {
		return err
	}
	starts.start(order.Number, now)
	return nil
}

// StartOrder records that the handler of a task with this payload starts now.
func (starts *Starts) StartOrder(order *Order) {
	starts.start(order.Number, Now())
}

func (starts *Starts) start(number uint64, now int64) {
	if number >= uint64(len(starts.at)) {
		return
	}
	if starts.at[number].CompareAndSwap(0, now) {
		starts.started.Add(1)
	} else {
		starts.again.Add(1)
	}
}

// Ledger returns the number of tasks that never started, and of those that started again.
func (starts *Starts) Ledger() (lost, duplicated int) {
	return len(starts.at) - int(starts.started.Load()), int(starts.again.Load())
}

// Since returns the time from a moment of each task, by number, to its start.
func (starts *Starts) Since(moments []int64) Latencies {
	var latencies Latencies
	for number, moment := range moments {
		if at := starts.at[number].Load(); at > 0 {
			latencies = append(latencies, at-moment)
		}
	}
	return latencies
}

// Wait returns when as many tasks have started, or after two minutes.
func (starts *Starts) Wait(count int) {
	for begun := time.Now(); starts.started.Load() < int64(count) && time.Since(begun) < 2*time.Minute; {
		time.Sleep(5 * time.Millisecond)
	}
}

// Measurement returns the same figures as that of the Rust crate.
func (starts *Starts) Measurement(row *Row, submitted []Submitted) *Measurement {
	measured := &Measurement{Extra: make(map[string]float64)}
	returned := func(each Submitted) int64 { return each.Returned }
	for _, weight := range row.UsedWeights() {
		latencies := starts.latencies(submitted, weight, returned)
		measured.Value = max(measured.Value, latencies.Percentile(0.99))
		measured.figures(fmt.Sprintf("weight_%d", weight), latencies)
	}
	measured.Latencies = starts.latencies(submitted, 0, returned)
	measured.figures("all", measured.Latencies)
	measured.figures("due", starts.latencies(submitted, 0, func(each Submitted) int64 { return each.Due }))
	measured.Extra["per_second"] = achieved(row, submitted)
	started := int(starts.started.Load())
	measured.Observed = map[string]int{"started": started}
	measured.Lost = max(len(submitted)-started, 0)
	measured.Duplicated = int(starts.again.Load())
	return measured
}

// latencies returns the latencies of the queue of a weight, or of all (0), from a moment to the
// start; zero for a task that started before it.
func (starts *Starts) latencies(submitted []Submitted, weight int, from func(Submitted) int64) Latencies {
	var latencies Latencies
	for _, each := range submitted {
		at := starts.at[each.Number].Load()
		if at > 0 && (weight == 0 || weight == each.Weight) {
			latencies = append(latencies, max(at-from(each), 0))
		}
	}
	return latencies
}

func (measured *Measurement) figures(of string, latencies Latencies) {
	measured.Extra[of+"_avg_us"] = latencies.Mean()
	measured.Extra[of+"_p50_us"] = latencies.Percentile(0.5)
	measured.Extra[of+"_p99_us"] = latencies.Percentile(0.99)
	measured.Extra[of+"_max_us"] = latencies.Percentile(1)
}

// achieved returns the tasks accepted each second, from the first due time to the return of the
// last submit.
func achieved(row *Row, submitted []Submitted) float64 {
	if len(submitted) == 0 {
		return 0
	}
	first, last := submitted[0].Due, submitted[0].Returned
	for _, each := range submitted {
		first, last = min(first, each.Due), max(last, each.Returned)
	}
	return float64(len(submitted)) / (float64(last-first)/1e9 + 1/float64(row.Rate))
}
