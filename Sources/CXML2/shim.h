#pragma once
// Debian builds libxml2 with ICU; its headers would clash with Foundation's own ICU module.
#include <libxml/xmlversion.h>
#undef LIBXML_ICU_ENABLED
#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/xmlerror.h>
