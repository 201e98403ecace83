package calibrate

import (
	"errors"

	"firesteel/core/confidence"
	"firesteel/core/job"
	"firesteel/models/checkpoint"
)

// Reasons not to write thresholds into a drafter's folder.
var (
	// ErrNoPlace: only drafters with a dspark.json have a place for thresholds.
	ErrNoPlace = errors.New("this drafter's files have no place for thresholds")
	// ErrCalibrated: thresholds are there, and replacing them was not asked for.
	ErrCalibrated = errors.New("the drafter's dspark.json holds thresholds already")
)

// CanWrite tells whether WriteSTS would write into the folder dir.
func CanWrite(dir string, force bool) error {
	if !checkpoint.HasDSpark(dir) {
		return ErrNoPlace
	}
	d, err := checkpoint.ReadDSpark(dir)
	if err != nil {
		return err
	}
	if d.Calibration != nil && !force {
		return ErrCalibrated
	}
	return nil
}

// WriteSTS writes the thresholds of m into dspark.json in the folder dir, as config.sts, and
// leaves all else as it is. With force they take the place of others. The file changes as a whole
// or not at all; what is left should this process be killed is found through notes, see job.Note.
func WriteSTS(dir, notes string, m *confidence.Measured, force bool) error {
	if err := CanWrite(dir, force); err != nil {
		return err
	}
	if err := job.Note(notes, dir); err != nil {
		return err
	}
	return checkpoint.WriteCalibration(dir, checkpoint.Calibration{Thresholds: m.Thresholds, Target: confidence.Worth, Samples: m.Fitted})
}
