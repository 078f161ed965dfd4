package ssd

// MQSim returns c with MQSim's quirks as of commit 7ec40e3 of 2022-10-05, except those that lose requests, crash or
// corrupt output; docs/validation/mqsim.md describes each.
func MQSim(c Config) Config {
	c.Quirks = Quirks{
		WholeChip:             true,
		HeadBlocks:            true,
		DataFirst:             true,
		MappingProgramsVanish: true,
		MappingPagesLaidOut:   true,
		BusCyclesTruncated:    true,
		RowsHalved:            true,
		WholeNanoseconds:      true,
		FrontiersAtOnce:       true,
		CollectOnFill:         true,
		SharesSummed:          true,
		CutAcross:             true,
		DiesForPlanes:         true,
		RotatesClasses:        true,
		MessagesInTurn:        true,
		WritesUnseen:          true,
		WaitersEvicted:        true,
		SectorsLost:           true,
		MovesUse:              true,
		EvictedAsOwn:          true,
		UpdatesHigh:           true,
		VictimsOfAll:          true,
		HostStop:              10,
		ReadHitDirties:        true,
		FillsNeedProgram:      true,
		WriteBackUses:         true,
		LookUpsFirst:          true,
		EndsAreEvents:         true,
		ReadsThenWrites:       true,
		FiltersShareClock:     true,
	}
	// Up to ten victims a plane; moved pages of each flow have their own blocks.
	c.Collection.Concurrent = 10
	c.Collection.Reserve = 1
	c.Collection.Streams = true
	// MQSim's suspension is configured but can never occur; its copyback crashes.
	c.Scheduling.SuspendProgram, c.Scheduling.SuspendErase, c.Scheduling.SuspendEraseForWrite = false, false, false
	c.Collection.Copyback, c.Scheduling.IndependentReads, c.Scheduling.ReadsInTurn = false, false, false
	c.Mapping.Allocation, c.Mapping.Grain = AllocateStatic, 0
	c.Timing.DataOutSetup = 0
	c.Cache.Destage = DestageFirstTouch
	c.Initial = InitialOnRead
	// Only each queue's fetch size limits the commands in the controller.
	c.Host.Commands = 0
	// The classes' weights are in its source.
	c.Host.Weights = [3]int{4, 2, 1}
	// MQSim's wear levelling by erase counts never triggers, because it compares block numbers.
	c.Wear.Dynamic, c.Wear.Static = true, 0
	// Its flash has no errors, and its controller takes no time for a command and never sleeps.
	c.Reliability, c.Controller, c.PowerStates, c.PowerLimit, c.SLCCache, c.Zones, c.FDP = nil, nil, nil, nil, nil,
		nil, nil
	return c
}
