/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_scalar.h - the scalar interpreter that test_fuzz.c compares with: one node at a time, as the language defines it. */
static double clip(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

static double scalar(const node *n, double a, double b, double c)
{
    switch (n->k) {
    case NEG: return -a;
    case NOT: return !(a != 0);
    case ABS: return fabs(a);
    case RELU: return a < 0 ? 0 : a;
    case FLOOR_HALF: return floor(a / 2);
    case SIGN: return a > 0 ? 1 : a < 0 ? -1 : a;
    case SAT_I8: return isnan(a) ? 0 : trunc(clip(a, -128, 127));
    case SAT_U4: return isnan(a) ? 0 : trunc(clip(a, 0, 15));
    case ISNAN: return isnan(a) != 0;
    case ISINF: return isinf(a) != 0;
    case CLAMP: return clip(a, -n->num, n->num);
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    case EQ: return a == b;
    case NE: return a != b;
    case AND: return a != 0 && b != 0;
    case OR: return a != 0 || b != 0;
    case LEAKY: return a > 0 ? a : 2 * a;
    case FMA: return a * b + c;
    default: return a != 0 ? b : c; /* SEL, TERN */
    }
}

static double start(kind k)
{
    return k == PROD_SIGN || k == ALLOF ? 1 : k == RMAX || k == ARGMAX ? -INFINITY : k == RMIN ? INFINITY : 0;
}

static double step(kind k, double acc, double x)
{
    switch (k) {
    case SUM: return acc + x;
    case PROD_SIGN: return acc * x;
    case ANY: return acc != 0 || x != 0;
    case ALLOF: return acc != 0 && x != 0;
    case ABSMAX: x = fabs(x); /* fall through */
    case RMAX: return isnan(acc) || isnan(x) ? NAN : x > acc ? x : acc;
    default: return isnan(acc) || isnan(x) ? NAN : x < acc ? x : acc;
    }
}

static void reduce(const fuzz *f, const node *n, double *out)
{
    const double *x = f->n[n->a].val;
    int64_t outer = f->mode == ROWS ? f->rows : f->mode == COLS ? f->cols : 1;
    int64_t inner = f->mode == ROWS ? f->cols : f->mode == COLS ? f->rows : f->rows * f->cols;
    for (int64_t o = 0; o < outer; o++) {
        double acc = start(n->k), where = 0;
        for (int64_t i = 0; i < inner; i++) {
            double v = x[f->mode == COLS ? i * f->cols + o : f->mode == ROWS ? o * f->cols + i : i];
            if (n->k == ARGMAX) {
                if (!isnan(acc) && !(v <= acc)) acc = v, where = (double)i;
            } else
                acc = step(n->k, acc, v);
        }
        if (n->k == ARGMAX) acc = where;
        for (int64_t i = 0; i < inner; i++)
            out[f->mode == COLS ? i * f->cols + o : f->mode == ROWS ? o * f->cols + i : i] = acc;
    }
}

static void evaluate(fuzz *f)
{
    int64_t cells = f->rows * f->cols;
    for (int i = 0; i < f->nn; i++) {
        node *n = &f->n[i];
        double *out = n->val = f->arena + f->used;
        f->used += (size_t)cells;
        if (n->k >= SUM) {
            reduce(f, n, out);
            continue;
        }
        for (int64_t p = 0; p < cells; p++) {
            int64_t r = p / f->cols, c = p % f->cols;
            if (n->k == NUM)
                out[p] = n->num;
            else if (n->k == IDX)
                out[p] = (double)(n->num == -1 ? f->col0 + c : f->row0 + r);
            else if (n->k == VAR) {
                const var *v = &f->v[(int)n->num];
                st_load_f64(v->type,
                            v->want +
                                (v->off + r * v->sm + c * v->sn) * (int64_t)(strata_type_bits(v->type) / 8),
                            &out[p]);
            } else
                out[p] = scalar(n, f->n[n->a].val[p], n->b >= 0 ? f->n[n->b].val[p] : 0,
                                n->c >= 0 ? f->n[n->c].val[p] : 0);
        }
    }
}

/* ---- operands -------------------------------------------------------------------------------------------------------- */
/* strides of one of the usual kinds: packed, padded, stepped, transposed, turned round */
