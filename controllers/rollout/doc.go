// Package rollout moves shared volumes onto the network that the settings choose. It gathers facts,
// asks rollout.Next for the next step, does the step, and reports in the record's status.
// Package apply reports in the settings.
//
// A step that disturbs components is decided on the cache, and again on a live read. Each step is
// one write that is safe to repeat, so a crash between two steps resumes.
package rollout
