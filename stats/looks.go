package stats

// firstLook is the fewest replicates that are looked at before the last look: fewer tell little of their spread.
const firstLook = 5

// Looks returns after how many replicates data are looked at that may end a study before most replicates: 5, 7, 10, 14, 20 and so on, twice as many with every
// other look, and most itself. The errors of all looks together stay below a level if each of K looks has a K-th of it, whatever the looks have to do with each other:
// an error rate that is spent over looks (Lan and DeMets, Biometrika 70(3), 1983) in amounts that are fixed before (Slud and Wei, JASA 77(380), 1982).
func Looks(most int) []int {
	var out []int
	for n, next := firstLook, 7; n < most; n, next = next, 2*n {
		out = append(out, n)
	}
	return append(out, most)
}
