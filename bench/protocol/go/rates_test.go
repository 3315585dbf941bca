package protocol

import "testing"

func TestAPercentileIsTheNearestRank(t *testing.T) {
	var latencies Latencies
	for microseconds := range int64(100) {
		latencies = append(latencies, (microseconds+1)*1000)
	}
	for fraction, expected := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100} {
		if found := latencies.Percentile(fraction); found != expected {
			t.Errorf("%v: %v", fraction, found)
		}
	}
}

func TestATaskThatStartedTwiceIsADuplicateAndOneThatDidNotIsLost(t *testing.T) {
	row := &Row{Count: 2, Rate: 1, Queues: "alone", PayloadBytes: 200}
	payload, err := row.Payloads()
	if err != nil || len(payload(1)) != 200 {
		t.Fatal(err)
	}
	starts := NewStarts(row.Count)
	for range 2 {
		if err := starts.Start(payload(1)); err != nil {
			t.Fatal(err)
		}
	}
	measured := starts.Measurement(row, []Submitted{{Number: 0, Weight: 5}, {Number: 1, Weight: 5}})
	if measured.Lost != 1 || measured.Duplicated != 1 || len(measured.Latencies) != 1 {
		t.Errorf("%+v", measured)
	}
}
