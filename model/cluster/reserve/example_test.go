package reserve_test

import (
	"fmt"

	"farflash/model/cluster/reserve"
)

// A gateway puts a chunk to three of nine idle targets.
func Example() {
	d, err := reserve.New(reserve.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	targets := make([]*reserve.Regular, d.Group)
	offers := reserve.NewOffers(d)
	const chunk, gateway = 42, 7
	for i := range targets {
		targets[i] = reserve.NewRegular(d)
		offers.Add(int32(i), targets[i].Request(0, chunk, gateway, 0, 0, nil), nil)
	}
	answer := d.Control + d.Trip
	picks, ok := d.Intersect(answer, offers, d.Replicas, nil)
	fmt.Println(ok, len(picks), "replicas in", picks[0].Window.Width(), "from", picks[0].Window.Left)

	accepted := 0
	for i, t := range targets {
		if i < len(picks) && t.Accept(answer, chunk, picks[i].Window).Verdict == reserve.Taken {
			accepted++
		} else {
			t.Cancel(answer, chunk)
		}
	}
	fmt.Println(accepted, "accepted")
	// Output:
	// true 3 replicas in 125.766105us from 5.848484us
	// 3 accepted
}
