package rng

// The constants of MRG32k3a, the combined multiple recursive generator of L'Ecuyer (Operations Research 47(1), 1999):
// two recurrences of order three, x[n] = mrgA12 x[n-2] - mrgA13 x[n-3] mod mrgM1 and y[n] = mrgA21 y[n-1] - mrgA23
// y[n-3] mod mrgM2, whose difference is a 32-bit number that is scaled by mrgNorm. NS3Draws and MQSim implement the two
// peers' uses of it.
const (
	mrgM1   = 4294967087
	mrgM2   = 4294944443
	mrgA12  = 1403580
	mrgA13  = 810728
	mrgA21  = 527612
	mrgA23  = 1370589
	mrgNorm = 2.328306549295727688e-10
)
