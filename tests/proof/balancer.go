package main

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// How the way of a review to claimguard fails.
type balancerFault int32

const (
	balancerWorks  balancerFault = iota
	balancerHolds                // what comes is late by three to seven seconds: the API server gives up after five
	balancerLoses                // the review arrives, and its answer is lost
	balancerCloses               // connections are closed at once
)

// A balancer takes API servers' connections for reviews to the claimguards in turn, as a Service does. TLS
// passes through it.
type balancer struct {
	plane    *plane
	listener net.Listener
	fault    atomic.Int32
	turn     atomic.Uint32
}

func newBalancer(p *plane) (*balancer, error) {
	listener, err := net.Listen("tcp", network+self+":8443")
	if err != nil {
		return nil, err
	}
	b := &balancer{plane: p, listener: listener}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(connection)
		}
	}()
	return b, nil
}

func (b *balancer) setFault(fault balancerFault) { b.fault.Store(int32(fault)) }

func (b *balancer) dial() net.Conn {
	names := b.plane.claimguards()
	first := int(b.turn.Add(1))
	for i := range names {
		name := names[(first+i)%len(names)]
		if to, err := net.DialTimeout("tcp", network+b.plane.host(name)+":8443", time.Second); err == nil {
			return to
		}
	}
	return nil
}

// pass ends both when either ends; API servers keep connections, so a fault counts for what is open, too.
func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	if balancerFault(b.fault.Load()) == balancerCloses {
		return
	}
	to := b.dial()
	if to == nil {
		return
	}
	defer to.Close()
	go func() {
		defer from.Close()
		defer to.Close()
		b.copy(from, to, func(fault balancerFault) bool { return fault != balancerLoses })
	}()
	b.copy(to, from, func(fault balancerFault) bool {
		if fault == balancerHolds {
			time.Sleep(time.Duration(3000+int(b.turn.Add(1))%5*1000) * time.Millisecond)
		}
		return fault != balancerCloses
	})
}

func (b *balancer) copy(to io.Writer, from io.Reader, passes func(balancerFault) bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !passes(balancerFault(b.fault.Load())) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
