package trial

import (
	"farflash/experiment"
	"farflash/experiment/drive"
	"farflash/experiment/network"
	"farflash/experiment/objects"
	"farflash/experiment/system"
	"farflash/experiment/tiers"
	"farflash/experiment/traffic"
	"farflash/result"
)

// Vocabulary is the names that results of all kinds of experiment have, in the order in which results have them.
func Vocabulary() *result.Vocabulary {
	return result.NewVocabulary(drive.Words(), network.Words(), system.Words(), objects.Operations(), traffic.Operations(), objects.Words(), traffic.Words(), tiers.Words(),
		objects.Bounds(), system.Iterations(), experiment.Words())
}
