package wire

import (
	"errors"
	"fmt"
)

// Outcome is what the server's RPC layer did with a call.
type Outcome uint32

// The first six are accept_stat of RFC 5531, the others reject_stat.
const (
	Success Outcome = iota
	ProgramUnavailable
	ProgramMismatch
	ProcedureUnavailable
	GarbageArguments
	SystemError
	RPCMismatch
	AuthError
)

var outcomes = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR", "RPC_MISMATCH", "AUTH_ERROR"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("outcome %d", uint32(o))
}

// Reply is a well-formed reply to one call.
type Reply struct {
	Outcome Outcome
	// Low and High are the versions that a server offers instead. Some servers leave them out: HasRange is false.
	Low, High uint32
	HasRange  bool
	Results   []byte // with Success, still encoded
}

// ParseReply reads the reply to the call with that XID. An error means: not a reply of RFC 5531.
func ParseReply(record []byte, xid uint32) (Reply, error) {
	d := decoder{rest: record}
	got, kind, state := d.word(), d.word(), d.word()
	switch {
	case d.err != nil:
		return Reply{}, d.err
	case kind != 1:
		return Reply{}, fmt.Errorf("message type is %d, a reply has 1", kind)
	case got != xid:
		return Reply{}, errors.New("reply is to another call")
	case state == 0:
		return accepted(d)
	case state == 1:
		return rejected(d)
	}
	return Reply{}, fmt.Errorf("reply_stat is %d, and RFC 5531 has 0 and 1", state)
}

func accepted(d decoder) (Reply, error) {
	d.word() // the flavor of the verifier: any
	d.opaque("the verifier", maxCredential)
	reply := Reply{Outcome: Outcome(d.word())}
	if d.err == nil && reply.Outcome > SystemError {
		d.fail(fmt.Errorf("accept_stat is %d, and RFC 5531 has 0 to 5", uint32(reply.Outcome)))
	}
	switch reply.Outcome {
	case Success:
		reply.Results = d.rest
	case ProgramMismatch:
		reply.versions(&d)
	}
	return reply.unless(d.err)
}

func rejected(d decoder) (Reply, error) {
	reply, reason := Reply{}, d.word()
	switch {
	case reason == 0:
		reply.Outcome = RPCMismatch
		reply.versions(&d)
	case reason == 1:
		reply.Outcome = AuthError
		d.word() // auth_stat
	default:
		d.fail(fmt.Errorf("reject_stat is %d, and RFC 5531 has 0 and 1", reason))
	}
	return reply.unless(d.err)
}

func (r *Reply) versions(d *decoder) {
	if r.HasRange = len(d.rest) > 0; r.HasRange {
		r.Low, r.High = d.word(), d.word()
	}
}

func (r Reply) unless(err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	return r, nil
}
