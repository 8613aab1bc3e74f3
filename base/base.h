/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base - what every room stands on: errors, logging, descriptors, buffers, /proc.
 *
 * Nothing here knows what a session is.  This is the room's only public header; it gathers
 * the small ones, each of which holds one idea and can be read by itself.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/late.h"
#include "base/log.h"
#include "base/par.h"
#include "base/preface.h"
#include "base/proc.h"
#include "base/sort.h"
#include "base/sys.h"
#include "base/text.h"

#endif
